// Tests the guarantees of trainer.h with every model of the catalog and both scalar types.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "devices/cuda_device.h"
#include "tests/support/copied_pass_device.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

/// Device under test.
std::function<std::unique_ptr<Device>()> make_device_here = make_host_device;

/// The host, the host with GPU properties, and a GPU if present.
std::vector<std::function<std::unique_ptr<Device>()>> devices_here() {
  std::vector<std::function<std::unique_ptr<Device>()>> all = {
      make_host_device, [] { return std::unique_ptr<Device>(std::make_unique<CopiedPassDevice>()); }};
  if (make_cuda_device(0)) all.emplace_back([] { return std::move(make_cuda_device(0)).value(); });
  return all;
}

/// A trainer with its own state and contribution.
struct Bench {
  explicit Bench(const ModelConfig& model, std::uint64_t seed = 1)
      : config(model),
        trainer(make_trainer(config, *device)),
        state(make_state(*trainer, *device, seed)),
        memory(make_contribution(trainer->layout(), *device)),
        out(view_of(*memory, trainer->layout())) {}

  StepReport compute(const BatchView& batch) { return trainer->compute_gradients(state, batch, out).value(); }
  void train(const BatchView& batch) {
    compute(batch);
    devices::sgd_step(state, out, {}, 1.0);
  }
  [[nodiscard]] Digest digest() const { return digest_of_state(state, *device); }
  [[nodiscard]] GradientView gradient() const { return out.slice(0, trainer->layout().parameters); }
  [[nodiscard]] GradientView buffers() const {
    return out.slice(trainer->layout().parameters, trainer->layout().buffers);
  }

  std::unique_ptr<Device> device = make_device_here();
  ModelConfig config;
  std::unique_ptr<Trainer> trainer;
  ModelState state;
  std::unique_ptr<Memory> memory;
  GradientView out;
};

/// True if the initial parameters come from a file, regardless of the seed.
bool begins_as_made(const ModelConfig& config) {
  return config.name == "torchscript";
}

void for_each_model(const std::function<void(const ModelConfig&)>& check) {
  for (const auto& device : devices_here()) {
    make_device_here = device;
    const std::string place(device()->name());
    CAPTURE(place);
    for (const ModelEntry* entry : builtin_models()) {
      for (const Scalar scalar : {Scalar::f32, Scalar::f64}) {
        const std::string name(entry->name);
        CAPTURE(name);
        CAPTURE(bytes_of(scalar));
        check(config_of(entry->name, scalar));
      }
    }
  }
  make_device_here = make_host_device;
}

ModelConfig with_loss(ModelConfig config, Loss loss) {
  config.loss = loss;
  return config;
}

/// Sum of rows_k / rows * gradient_k over batches of unequal sizes, one of them empty.
std::vector<double> weighted_sum(Bench& bench, const Rows& rows, const std::vector<std::size_t>& sizes,
                                 double total) {
  std::vector<double> sum(bench.trainer->layout().parameters, 0.0);
  std::size_t first = 0;
  for (const std::size_t size : sizes) {
    bench.compute(rows.view(first, size));
    const std::vector<double> part = numbers_of(bench.gradient());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i] * static_cast<double>(size) / total;
    first += size;
  }
  return sum;
}

}  // namespace

TEST_CASE("Models: weighted gradients of unequal batches are the gradient of the pooled batch") {
  for_each_model([](const ModelConfig& plain) {
    for (const Loss loss : {Loss::cross_entropy, Loss::mse}) {
      Bench bench(with_loss(plain, loss));
      const Rows rows(bench.config, 31, 2);
      const std::vector<double> sum = weighted_sum(bench, rows, {16, 8, 1, 0, 6}, 31);
      bench.compute(rows.all());
      const double gap = relative_l2(sum, numbers_of(bench.gradient()));
      if (plain.name == "cnn") {
        // Batch norm uses the statistics of each batch, so the weighted sum differs, but not much: a sum
        // without weights is about four times as long.
        MESSAGE(plain.name << ": relative gap of the pooled gradient " << gap);
        CHECK(gap > 1e-2);
        CHECK(gap < 1.0);
        CHECK(relative_l2(weighted_sum(bench, rows, {31}, 31), numbers_of(bench.gradient())) <= 1e-12);
      } else {
        CHECK(gap <= (plain.scalar == Scalar::f32 ? 1e-5 : 1e-12));
      }
    }
  });
}

TEST_CASE("Models: what is told of each row is what the model would have predicted") {
  for_each_model([](const ModelConfig& plain) {
    for (const Loss loss : {Loss::cross_entropy, Loss::mse}) {
      Bench bench(with_loss(plain, loss));
      const Rows rows(bench.config, 9, 2);
      const auto outputs = bench.trainer->predict(bench.state, rows.all()).value();
      const auto report = bench.compute(rows.all());
      const auto each = static_cast<std::size_t>(bench.config.outputs);
      REQUIRE(report.answers.size() == (loss == Loss::mse ? 9 * each : 9));
      if (plain.name == "cnn") continue;  // batch norm depends on the batch
      for (std::size_t row = 0; row < 9; ++row) {
        const auto of_row = std::span(outputs).subspan(row * each, each);
        if (loss == Loss::cross_entropy)
          CHECK(report.answers[row] == static_cast<float>(std::ranges::max_element(of_row) - of_row.begin()));
        else
          for (std::size_t o = 0; o < each; ++o)
            CHECK(report.answers[row * each + o] == doctest::Approx(of_row[o]).epsilon(1e-4));
      }
    }
  });
}

TEST_CASE("Models: the layout names every number once") {
  for_each_model([](const ModelConfig& config) {
    const Bench bench(config);
    const ModelLayout& layout = bench.trainer->layout();
    CHECK(layout.scalar == config.scalar);
    std::size_t end = 0;
    for (const TensorSlot& slot : layout.parameter_slots) {
      CHECK(slot.begin == end);
      CHECK(!slot.name.empty());
      std::int64_t count = 1;
      for (const std::int64_t d : slot.shape) count *= d;
      CHECK(slot.count == static_cast<std::size_t>(count));
      end += slot.count;
    }
    CHECK(end == layout.parameters);
    end = 0;
    for (const TensorSlot& slot : layout.buffer_slots) end += slot.count;
    CHECK(end == layout.buffers);
  });
}

TEST_CASE("Models: the same seed gives the same bits, another seed others") {
  for_each_model([](const ModelConfig& config) {
    const Bench a(config, 7);
    const Bench b(config, 7);
    const Bench c(config, 8);
    CHECK(a.digest() == b.digest());
    CHECK((a.digest() == c.digest()) == begins_as_made(config));
    for (const double w : numbers_of(a.state.optimizer_array(0))) REQUIRE(w == 0.0);
  });
}

TEST_CASE("Models: float32 and float64 begin with the same numbers") {
  for (const ModelEntry* entry : builtin_models()) {
    const Bench narrow(config_of(entry->name, Scalar::f32), 7);
    const Bench wide(config_of(entry->name, Scalar::f64), 7);
    CHECK(relative_l2(numbers_of(narrow.state.parameters()), numbers_of(wide.state.parameters())) < 1e-7);
  }
}

TEST_CASE("Models: computing a gradient changes no number of the state") {
  for_each_model([](const ModelConfig& config) {
    Bench bench(config);
    const Rows rows(config, 6, 2);
    const Digest before = bench.digest();
    const StepReport report = bench.compute(rows.all());
    CHECK(report.rows == 6);
    CHECK(report.finite);
    CHECK(report.loss_sum > 0);
    CHECK(report.correct <= 6);
    const std::vector<double> gradient = numbers_of(bench.gradient());
    double norm2 = 0;
    for (const double g : gradient) norm2 += g * g;
    CHECK(norm2 > 0);
    CHECK(report.gradient_norm2 == doctest::Approx(norm2).epsilon(1e-9));
    REQUIRE(bench.trainer->evaluate(bench.state, rows.all()));
    REQUIRE(bench.trainer->predict(bench.state, rows.all()));
    CHECK(bench.digest() == before);
  });
}

TEST_CASE("Models: no rows give a zero gradient, the state's buffers, and a report of zeros") {
  for_each_model([](const ModelConfig& config) {
    Bench bench(config);
    const Rows rows(config, 4, 2);
    bench.train(rows.all());  // so that the buffers differ from their initial values
    bench.compute(rows.all());
    const StepReport report = bench.compute(rows.view(0, 0));
    CHECK(report.rows == 0);
    CHECK(report.loss_sum == 0.0);
    CHECK(report.gradient_norm2 == 0.0);
    CHECK(report.finite);
    for (const double g : numbers_of(bench.gradient())) REQUIRE(g == 0.0);
    CHECK(numbers_of(bench.buffers()) == numbers_of(bench.state.buffers()));
    CHECK(bench.trainer->evaluate(bench.state, rows.view(0, 0)).value().rows == 0);
    CHECK(bench.trainer->predict(bench.state, rows.view(0, 0)).value().empty());
  });
}

TEST_CASE("Models: the same inputs give the same bits, again and in another trainer") {
  for_each_model([](const ModelConfig& config) {
    Bench a(config);
    Bench b(config);
    for (std::uint64_t step = 0; step < 4; ++step) {
      const Rows rows(config, 5 + step, step);
      a.compute(rows.all());
      const Digest first = digest_of_numbers(a.out);
      a.compute(rows.all());
      CHECK(digest_of_numbers(a.out) == first);
      a.train(rows.all());
      b.train(rows.all());
      REQUIRE(a.digest() == b.digest());
    }
  });
}

TEST_CASE("Models: one trainer serves two states as two trainers would") {
  for_each_model([](const ModelConfig& config) {
    Bench one(config, 1);
    Bench other(config, 2);
    Bench shared(config, 1);
    ModelState second = make_state(*shared.trainer, *shared.device, 2);
    const auto second_memory = make_contribution(shared.trainer->layout(), *shared.device);
    const GradientView second_out = view_of(*second_memory, shared.trainer->layout());
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Rows rows(config, 4, step);
      one.train(rows.all());
      other.train(rows.all());
      // Interleaved, so that each call finds the arrays of the other state.
      shared.compute(rows.all());
      REQUIRE(shared.trainer->compute_gradients(second, rows.all(), second_out));
      devices::sgd_step(shared.state, shared.out, {}, 1.0);
      REQUIRE(shared.trainer->evaluate(second, rows.all()));
      devices::sgd_step(second, second_out, {}, 1.0);
    }
    CHECK(shared.digest() == one.digest());
    CHECK(digest_of_state(second, *shared.device) == other.digest());
  });
}

TEST_CASE("Models: evaluating rows together or one by one says the same") {
  for_each_model([](const ModelConfig& config) {
    Bench bench(config);
    const Rows rows(config, 5, 2);
    bench.train(rows.all());
    const StepReport together = bench.trainer->evaluate(bench.state, rows.all()).value();
    StepReport apart;
    std::vector<float> outputs;
    for (std::size_t row = 0; row < 5; ++row) {
      const StepReport one = bench.trainer->evaluate(bench.state, rows.view(row, 1)).value();
      apart.loss_sum += one.loss_sum;
      apart.correct += one.correct;
      const auto y = bench.trainer->predict(bench.state, rows.view(row, 1)).value();
      outputs.insert(outputs.end(), y.begin(), y.end());
    }
    CHECK(together.rows == 5);
    CHECK(together.correct == apart.correct);
    CHECK(together.loss_sum == doctest::Approx(apart.loss_sum).epsilon(1e-5));
    const std::vector<float> all = bench.trainer->predict(bench.state, rows.all()).value();
    REQUIRE(all.size() == outputs.size());
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == doctest::Approx(outputs[i]).epsilon(1e-4));
  });
}

TEST_CASE("Models: a label out of range is an error, not a crash, and the trainer lives on") {
  for_each_model([](const ModelConfig& config) {
    Bench bench(config);
    for (const float label : {10.0F, -1.0F, 1e9F, 2.5F, std::numeric_limits<float>::quiet_NaN()}) {
      const Rows rows(config, 3, 2);
      rows.targets()[1] = label;
      const auto computed = bench.trainer->compute_gradients(bench.state, rows.all(), bench.out);
      REQUIRE(!computed);
      CHECK(computed.error().code == ErrorCode::bad_record);
      CHECK(computed.error().message.find("row 1") != std::string::npos);
      CHECK(!bench.trainer->evaluate(bench.state, rows.all()));
    }
    CHECK(bench.compute(Rows(config, 3, 2).all()).finite);
  });
}

TEST_CASE("Models: a batch with a number that is none is reported as not finite, and leaves nothing behind") {
  for_each_model([](const ModelConfig& config) {
    for (const float poison :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Bench bench(config);
      Bench clean(config);
      const Rows bad(config, 3, 2);
      bad.features()[7] = poison;
      const Digest before = bench.digest();
      CHECK(!bench.compute(bad.all()).finite);
      CHECK(bench.digest() == before);
      const Rows good(config, 3, 3);
      bench.train(good.all());
      clean.train(good.all());
      CHECK(bench.digest() == clean.digest());
    }
  });
}

TEST_CASE("Models: a configuration that cannot work is refused with the key's name") {
  const auto device = make_host_device();
  const auto refused = [&](const ModelConfig& config, std::string_view word) {
    const auto made = model_entry(config.name).make(config, *device);
    REQUIRE(!made);
    CHECK(made.error().code == ErrorCode::invalid_config);
    INFO(made.error().message);
    CHECK(made.error().message.find(word) != std::string::npos);
  };
  for (const ModelEntry* entry : builtin_models()) {
    CAPTURE(std::string(entry->name));
    ModelConfig config = config_of(entry->name);
    config.outputs = 0;
    refused(config, "model.classes");
    config = config_of(entry->name);
    config.threads = 0;
    refused(config, "device.threads");
    config = config_of(entry->name);
    config.input = {4, 0};
    refused(config, "decode");
    config.input = {};
    refused(config, "decode");
  }
}

TEST_CASE("Models: all of them descend on a batch they see again and again") {
  for_each_model([](const ModelConfig& config) {
    Bench bench(config);
    const Rows rows(config, 8, 2);
    const double before = bench.compute(rows.all()).loss_sum;
    for (int step = 0; step < 10; ++step) bench.train(rows.all());
    CHECK(bench.compute(rows.all()).loss_sum < before);
  });
}

TEST_CASE("Models: a pass over copies of the numbers gives what a pass over the numbers gives") {
  for (const ModelEntry* entry : builtin_models()) {
    const std::string name(entry->name);
    CAPTURE(name);
    const ModelConfig config = config_of(name);
    for (const std::size_t rows : {1, 15, 16, 17, 48}) {
      CAPTURE(rows);
      make_device_here = make_host_device;
      Bench plain(config);
      make_device_here = [] { return std::unique_ptr<Device>(std::make_unique<CopiedPassDevice>()); };
      Bench copied(config);
      make_device_here = make_host_device;
      const Rows batch(config, rows, 3);
      const StepReport a = plain.compute(batch.all());
      const StepReport b = copied.compute(batch.all());
      CHECK(relative_l2(numbers_of(copied.out), numbers_of(plain.out)) < 1e-6);
      CHECK(b.loss_sum == doctest::Approx(a.loss_sum).epsilon(1e-6));
      CHECK(b.rows == rows);
      CHECK(b.correct == a.correct);
      // A narrow mlp uses LibTorch's layers only with copied passes.
      if (rows % 16 == 0 && name != "mlp")
        CHECK(digest_of_numbers(copied.out) == digest_of_numbers(plain.out));
    }
  }
}
