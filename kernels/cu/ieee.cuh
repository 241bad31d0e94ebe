// What all native kernels share: dtypes, the one signature, and arithmetic of one meaning.
//
// Formula: every operation below is one IEEE 754 operation with round to nearest, ties to even, subnormals kept. float64 is
// computed in double, float32, float16 and bfloat16 in float; 16-bit operands are exact in float, and a result is rounded to
// 16 bits once, at the end. Nothing is contracted (-fmad=false); where a product and a sum share a rounding it is written
// fma(a, b, c).
//
// One source, three ways: NVRTC makes PTX of it, without a header of CUDA's; a C++ compiler makes a program of it, whose
// launch is a loop over blocks and threads; `reference::replay::native` holds the same order in Rust. So a kernel has neither
// shared memory nor a barrier: one thread computes one element of the result, in the order that its file documents.
//
// Special values: a conversion to 16 bits keeps NaN (as a quiet one), infinities and signed zeros; what rounds beyond the
// greatest finite number is an infinity. Payloads of NaN are not specified.

#pragma once

typedef unsigned short Bits16;
typedef unsigned int Bits32;
typedef long long Index;

__device__ inline Bits32 bits_of(float x) {
    union { float f; Bits32 u; } both;
    both.f = x;
    return both.u;
}

__device__ inline float float_of(Bits32 u) {
    union { Bits32 u; float f; } both;
    both.u = u;
    return both.f;
}

// float16 to float, exact. A subnormal is its integer fraction times 2^-24.
__device__ inline float float16_to_float(Bits16 h) {
    Bits32 sign = (Bits32)(h & 0x8000u) << 16;
    Bits32 exponent = (h >> 10) & 0x1fu;
    Bits32 fraction = h & 0x3ffu;
    if (exponent == 0x1fu) {
        return float_of(sign | 0x7f800000u | (fraction << 13));
    }
    if (exponent == 0) {
        float magnitude = (float)fraction * 5.9604644775390625e-08f; // 2^-24: exact
        return float_of(sign | bits_of(magnitude));
    }
    return float_of(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

// float to float16, to nearest, ties to even.
__device__ inline Bits16 float_to_float16(float x) {
    Bits32 bits = bits_of(x);
    Bits32 sign = (bits >> 16) & 0x8000u;
    Bits32 magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (Bits16)(sign | 0x7e00u);
    }
    if (magnitude >= 0x477ff000u) { // 65520, half an ulp above the greatest finite number
        return (Bits16)(sign | 0x7c00u);
    }
    if (magnitude >= 0x38800000u) { // 2^-14, the least normal number: drop 13 bits, a carry goes into the exponent
        Bits32 rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
        return (Bits16)(sign | ((rounded - 0x38000000u) >> 13));
    }
    if (magnitude <= 0x33000000u) { // 2^-25, the tie between 0 and the least subnormal number
        return (Bits16)sign;
    }
    Bits32 significand = (magnitude & 0x7fffffu) | 0x800000u;
    Bits32 shift = 126u - (magnitude >> 23); // 14 to 24
    Bits32 kept = significand >> shift;
    Bits32 rest = significand & ((1u << shift) - 1u);
    Bits32 half = 1u << (shift - 1u);
    kept += (rest > half || (rest == half && (kept & 1u))) ? 1u : 0u;
    return (Bits16)(sign | kept);
}

__device__ inline float bfloat16_to_float(Bits16 b) {
    return float_of((Bits32)b << 16);
}

// float to bfloat16, to nearest, ties to even.
__device__ inline Bits16 float_to_bfloat16(float x) {
    Bits32 bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (Bits16)((bits >> 16) | 0x40u);
    }
    return (Bits16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// A dtype: what is stored, what it is computed in, and the way between them.
struct Float64 {
    typedef double Stored;
    typedef double Computed;
    __device__ static double load(double x) { return x; }
    __device__ static double store(double x) { return x; }
};

struct Float32 {
    typedef float Stored;
    typedef float Computed;
    __device__ static float load(float x) { return x; }
    __device__ static float store(float x) { return x; }
};

struct Float16 {
    typedef Bits16 Stored;
    typedef float Computed;
    __device__ static float load(Bits16 x) { return float16_to_float(x); }
    __device__ static Bits16 store(float x) { return float_to_float16(x); }
};

struct BFloat16 {
    typedef Bits16 Stored;
    typedef float Computed;
    __device__ static float load(Bits16 x) { return bfloat16_to_float(x); }
    __device__ static Bits16 store(float x) { return float_to_bfloat16(x); }
};

// a * b + c with one rounding.
__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }

__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline double root(double x) { return sqrt(x); }

__device__ inline float toward_zero(float x) { return truncf(x); }
__device__ inline double toward_zero(double x) { return trunc(x); }

__device__ inline float downward(float x) { return floorf(x); }
__device__ inline double downward(double x) { return floor(x); }

// What a launch hands over. Operands are dense and row-major, null where absent; `sizes` and `scalars` are as the kernel's
// file says, `sizes[0]` being the number of elements of the result; scalars are already rounded to what is computed in.
struct Launch {
    void *result;
    const void *operands[5];
    const Index *sizes;
    const double *scalars;
};

// Element `i` of operand `which`.
template <typename D>
__device__ inline typename D::Computed operand(const Launch &launch, int which, Index i) {
    return D::load(((const typename D::Stored *)launch.operands[which])[i]);
}

// The offsets, in two operands, of row-major position `i` of a shape; `table` holds the rank, the shape and the two lists
// of strides (0 where an operand is broadcast).
__device__ inline void offsets(const Index *table, Index i, Index *first, Index *second) {
    Index rank = table[0];
    const Index *shape = table + 1;
    *first = 0;
    *second = 0;
    for (Index d = rank - 1; d >= 0; --d) {
        Index at = i % shape[d];
        i /= shape[d];
        *first += at * shape[rank + d];
        *second += at * shape[2 * rank + d];
    }
}

// The kernels `name_float64` to `name_bfloat16`: thread i writes what the function template `element` gives for element i.
#define KERNEL(name, dtype, D, element)                                                                                \
    extern "C" __global__ void name##_##dtype(Launch launch) {                                                         \
        Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x;                                                        \
        if (i < launch.sizes[0]) {                                                                                     \
            ((D::Stored *)launch.result)[i] = D::store(element<D>(launch, i));                                         \
        }                                                                                                              \
    }

#define KERNELS(name, element)                                                                                         \
    KERNEL(name, float64, Float64, element)                                                                            \
    KERNEL(name, float32, Float32, element)                                                                            \
    KERNEL(name, float16, Float16, element)                                                                            \
    KERNEL(name, bfloat16, BFloat16, element)
