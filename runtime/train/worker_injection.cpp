#include "runtime/train/worker.h"

// Injected rows: exchanges rows with the streams of other devices.
namespace rivulet::runtime {

void Worker::inject_rows() {
  const std::size_t lent = rows().lend(injected_rows_, view_->session->plan().next.injected_per_row());
  if (lent > 0) report_.metrics().injected_trained.add(static_cast<double>(lent));
}

/// Call after the batch was trained.
void Worker::offer_rows() {
  const BatchView batch = rows().batch().view();
  const std::size_t own = rows().batch().own_rows();
  if (config_.classes > 0 && measurements_.requests_labels()) measurements_.trained(batch, own);
  if (view_->session->plan().next.injection) injected_rows_.offer(batch, own);
}

/// Sends injected rows with the facts of this round.
void Worker::send_rows() {
  const auto& schedule = view_->session->plan().next;
  const std::uint32_t rank = view_->spec.rank;
  const std::uint32_t outgoing = schedule.injected_by(rank);
  if (outgoing == 0) return;
  auto parcels = injected_rows_.draw(outgoing, view_->spec.world(), rank);
  std::size_t bytes = 0;
  for (const auto& parcel : parcels) bytes += parcel.size();
  measurements_.copied(bytes);
  view_->session->send_rows(std::move(parcels));
}

/// Call after the group has synchronized.
void Worker::learn_of_streams() {
  stream_.heed_change();
  const devices::ModelLayout& layout = parts_.trainer.layout();
  if (layout.normalized.features == 0 || !measurements_.requests_feature_skew()) return;
  const std::size_t columns = layout.normalized.size();
  devices::Measured own, all;
  own.read(devices::measured_in(model().contribution(), layout), columns);
  all.read(devices::measured_in(view_->session->agreed(), layout), columns);
  if (view_->session->table().facts[view_->spec.rank].rows == 0) own.rows = 0;  // from an earlier round
  measurements_.skew().agreed(own, all, parts_.state->model.columns().first(layout.normalized.features));
}

Status Worker::receive_rows() {
  return injected_rows_.receive(view_->session->injected_rows(), view_->spec);
}

}  // namespace rivulet::runtime
