// Stands in for a Gloo header that LibTorch's wheel lacks. ProcessGroupGloo.hpp includes it and needs nothing
// of it.
#pragma once
