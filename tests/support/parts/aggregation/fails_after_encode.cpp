// Encodes as every collective does, then its transport fails.
#include "sync/collective/aggregation.h"

namespace rivulet::sync {
namespace {

class FailsAfterEncode final : public Aggregation {
 public:
  Status begin(Transport& transport, const Exchange& x) override {
    std::vector<std::byte> bytes(x.payload_bytes());
    if (x.sends(transport.rank())) encode_contribution(x, bytes);
    for (auto& b : x.agreed.host_bytes()) b = std::byte{0xff};  // scratch may be garbage after a failure
    return ok();
  }
  Progress poll() override { return Progress::failed; }
  [[nodiscard]] const Error& error() const override { return error_; }

 private:
  const Error error_{ErrorCode::peer_lost, "planted failure after encode"};
};

}  // namespace
extern const AggregationEntry aggregation_fails_after_encode;
const AggregationEntry aggregation_fails_after_encode{
    "fails_after_encode", "test only",
    [] { return std::unique_ptr<Aggregation>(std::make_unique<FailsAfterEncode>()); }};
}  // namespace rivulet::sync
