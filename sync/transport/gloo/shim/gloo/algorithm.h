// Replaces a Gloo header that LibTorch's wheel lacks. ProcessGroupGloo.hpp includes it but uses nothing of
// it.
#pragma once
