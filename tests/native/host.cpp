// Runs launches of the kernels of KERNEL_FILE, a .cu file, read from one file; writes their results to another.
//
// A launch in the file, all numbers 64 bits: the kernel's name, the bytes of the result, five operands, the sizes, the scalars;
// each but the second with its length in bytes before it, -1 where an operand is absent.

#include "shim.hpp"

#include KERNEL_FILE

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static FILE *calls;

static Index number() {
    Index n;
    if (fread(&n, sizeof n, 1, calls) != 1) {
        fprintf(stderr, "the file of launches ends within one\n");
        exit(1);
    }
    return n;
}

static std::vector<char> bytes(Index length) {
    std::vector<char> data(length);
    if (length > 0 && fread(data.data(), 1, length, calls) != (size_t)length) {
        fprintf(stderr, "the file of launches ends within a list\n");
        exit(1);
    }
    return data;
}

int main(int, char **arguments) {
    calls = fopen(arguments[1], "rb");
    FILE *results = fopen(arguments[2], "wb");
    if (!calls || !results) {
        perror("opening the files");
        return 1;
    }
    for (int c = fgetc(calls); c != EOF; c = fgetc(calls)) {
        ungetc(c, calls);
        std::vector<char> text = bytes(number());
        std::string name(text.begin(), text.end());
        std::vector<char> result(number(), (char)0x5a);
        std::vector<char> operands[5];
        Launch launch = {};
        launch.result = result.data();
        for (int i = 0; i < 5; ++i) {
            Index length = number();
            if (length >= 0) {
                operands[i] = bytes(length);
                operands[i].reserve(1); // an empty operand is present
                launch.operands[i] = operands[i].data();
            }
        }
        std::vector<char> sizes = bytes(number()), scalars = bytes(number());
        launch.sizes = (const Index *)sizes.data();
        launch.scalars = (const double *)scalars.data();
        auto kernel = (void (*)(Launch))dlsym(RTLD_DEFAULT, name.c_str());
        if (!kernel) {
            fprintf(stderr, "no kernel %s\n", name.c_str());
            return 1;
        }
        blockDim.x = 64;
        for (blockIdx.x = 0; (Index)blockIdx.x * blockDim.x < launch.sizes[0]; ++blockIdx.x) {
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) {
                kernel(launch);
            }
        }
        fwrite(result.data(), 1, result.size(), results);
    }
    return fclose(results);
}
