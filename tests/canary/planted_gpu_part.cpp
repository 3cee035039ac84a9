// What LibTorch keeps of Gloo in its library for GPUs: a part without transports, and no second copy.
namespace gloo {

int planted_for_gpus();
int planted_for_gpus() {
  return 1;
}

}  // namespace gloo
