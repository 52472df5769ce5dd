"""Reads memory from another process's allocate() in place: python3 python-reads.py <pid> <bytes> <tag>"""
import glob
import mmap
import os
import sys


def memory_of(pid, length, tag):
    """Returns the memory of process `pid` that begins with the tag, as read-only bytes."""
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            # The link of an unnamed file contains the name given at its creation, and opens the file.
            if "memfd:networkdirect" not in os.readlink(path) or os.stat(path).st_size < length:
                continue
            with open(path, "rb") as file:
                memory = mmap.mmap(file.fileno(), length, prot=mmap.PROT_READ)
        except OSError:
            continue  # the file has been closed in the meantime
        if memory[: len(tag)] == tag:
            return memoryview(memory)
    sys.exit(f"process {pid} has no such memory, or belongs to another user")


memory = memory_of(sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3]))
numbers = memory[16:].cast("d")  # after the tag; numpy.frombuffer(memory, offset=16) creates an array
print(f"Python sees {len(numbers)} numbers, the last is {numbers[-1]}", flush=True)
sys.stdin.readline()
print(f"Python sees {numbers[-1]} now")
