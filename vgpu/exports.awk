# SPDX-License-Identifier: MIT
#
# The version script of a library that stands for one driver branch:
#
#   awk -v driver=535 -f exports.awk nvml_functions.h
BEGIN { print "{ global:" }
match($0, /X\((OURS|OLD|REST), [0-9]+, nvml[A-Za-z0-9_]+\)/) {
    split(substr($0, RSTART + 2, RLENGTH - 3), part, /, */)
    if (part[2] + 0 <= driver + 0)
        print "    " part[3] ";"
}
END { print "local: *; };" }
