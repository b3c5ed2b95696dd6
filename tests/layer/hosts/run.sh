#!/bin/sh
# Launches every kernel from C, by cudarc and from Python, and compares what it computes with what is right: PASS or FAIL for each. Exits with 0 if all pass,
# with 77 if there is no GPU, else with 1. With a C compiler the program in C is built anew first.
cd "$(dirname "$0")" || exit 1
if command -v gcc > /dev/null && ! gcc -O2 -Wall -Wextra -o of_c host.c c/*.c -ldl -lm; then
    echo "FAIL: the C host does not compile here"
    exit 1
fi
status=0
absent=0
try() {
    "$@"
    case $? in
    0) ;;
    77) absent=1 ;;
    *) status=1 ;;
    esac
}
try ./of_c
try ./of_cudarc
if command -v python3 > /dev/null; then try python3 launch.py; else echo "no python3: not run"; fi
if [ $status -ne 0 ]; then
    echo "some FAIL"
elif [ $absent -ne 0 ]; then
    echo "no GPU: not run"
    status=77
else
    echo "all PASS"
fi
exit $status
