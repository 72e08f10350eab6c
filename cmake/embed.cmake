# SPDX-License-Identifier: Apache-2.0
# Writes a file's bytes as a source of C++: an array NAME and its size NAMESize.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "// Generated from a file.
#include <cstddef>
namespace ${NAMESPACE} {
extern const unsigned char ${NAME}[];
extern const size_t ${NAME}Size;
const unsigned char ${NAME}[] = {
${bytes}
};
const size_t ${NAME}Size = sizeof ${NAME};
}
")
