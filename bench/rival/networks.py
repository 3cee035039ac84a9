"""Rivulet's models lenet5 and mlp (one hidden layer of 64) in PyTorch, for flat rows."""


def make_network(torch, name):
    nn = torch.nn
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    # Pooling before ReLU gives the same values and computes ReLU on a quarter of the pixels.
    network = nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 6, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return network.to(memory_format=torch.channels_last)
