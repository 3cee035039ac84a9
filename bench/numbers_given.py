"""Numbers on the command line, as argparse's types: it refuses the others with a line and exit code 2."""

import argparse
import math


def positive_number(word):
    number = float(word)
    if not (number > 0 and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"{word} is not a number above 0")
    return number


def positive_count(word):
    count = int(word)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a count of at least 1")
    return count
