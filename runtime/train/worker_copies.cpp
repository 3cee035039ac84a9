#include "runtime/train/worker.h"

// Injected rows: exchanges rows with the streams of other devices.
namespace rivulet::runtime {

void Worker::add_copies() {
  const std::size_t lent = rows().lend(copies_, view_->session->plan().next.injected_per_row());
  if (lent > 0) report_.metrics().copies_trained.add(static_cast<double>(lent));
}

/// After the batch was trained.
void Worker::offer_copies() {
  const BatchView batch = rows().batch().view();
  const std::size_t own = rows().batch().own_rows();
  if (config_.classes > 0 && measures_.wants_labels()) measures_.trained(batch, own);
  if (view_->session->plan().next.injection) copies_.offer(batch, own);
}

/// Sends injected rows with the facts of this round.
void Worker::give_copies() {
  const auto& schedule = view_->session->plan().next;
  const std::uint32_t rank = view_->spec.rank;
  const std::uint32_t copies = schedule.injected_by(rank);
  if (copies == 0) return;
  auto parcels = copies_.give(copies, view_->spec.world(), rank);
  std::size_t bytes = 0;
  for (const auto& parcel : parcels) bytes += parcel.size();
  measures_.copied(bytes);
  view_->session->bring_copies(std::move(parcels));
}

/// After the group has synchronized.
void Worker::learn_of_streams() {
  stream_.heed_change();
  const devices::ModelLayout& layout = parts_.trainer.layout();
  if (layout.normalized.features == 0 || !measures_.wants_feature_skew()) return;
  const std::size_t columns = layout.normalized.size();
  devices::Measured own, all;
  own.read(devices::measured_in(model().contribution(), layout), columns);
  all.read(devices::measured_in(view_->session->agreed(), layout), columns);
  if (view_->session->table().facts[view_->spec.rank].rows == 0) own.rows = 0;  // from an earlier round
  measures_.skew().agreed(own, all, parts_.state->model.columns().first(layout.normalized.features));
}

Status Worker::receive_copies() {
  return copies_.receive(view_->session->copies(), view_->spec);
}

}  // namespace rivulet::runtime
