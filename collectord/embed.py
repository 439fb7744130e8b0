#!/usr/bin/env python3
"""Writes a file as a C array: embed.py INPUT OUTPUT NAME."""
import sys

data = open(sys.argv[1], "rb").read()
name = sys.argv[3]
with open(sys.argv[2], "w", encoding="ascii") as out:
    out.write('#include "collectord/openapi.h"\n\n')
    out.write(f"const char {name}[] = {{\n")
    for i in range(0, len(data), 24):
        out.write("".join(f"{byte - 256 if byte > 127 else byte}," for byte in data[i : i + 24]) + "\n")
    out.write("0};\n")
    out.write(f"const size_t {name}_size = {len(data)};\n")
