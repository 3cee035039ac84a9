"""Types of numeric arguments for argparse, which rejects other values with a message and exit code 2."""

import argparse
import math


def positive_number(word):
    number = float(word)
    if not (number > 0 and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"{word} is not a positive number")
    return number


def positive_count(word):
    count = int(word)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a positive integer")
    return count
