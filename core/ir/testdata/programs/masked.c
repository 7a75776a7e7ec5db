// Loops that become masked loads and stores, gathers and scatters where the
// machine has them.
#include <stdint.h>
#include <stdio.h>
#if defined __AVX2__
#include <immintrin.h>
#endif

enum { n = 203 };
static double x[n], y[n], z[n];
static int32_t index_of[n], small[n];
static int64_t wide[n];

__attribute__((noinline)) static void conditional(double *restrict to, const double *restrict from)
{
	for (int i = 0; i < n; i++)
		if (x[i] > 50)
			to[i] = from[i] + x[i];
}

__attribute__((noinline)) static void gather(double *restrict to, const double *restrict from)
{
	for (int i = 0; i < n; i++)
		if (index_of[i] & 1)
			to[i] += from[index_of[i]];
}

__attribute__((noinline)) static void scatter(double *restrict to, const double *restrict from)
{
	for (int i = 0; i < n; i++)
		if (small[i] > 20)
			to[index_of[i]] = from[i];
}

static int intrinsics(void)
{
	int sum = 0;
#if defined __AVX2__
	__m256i mask = _mm256_setr_epi32(-1, 0, -1, -1, 0, 0, 0, -1);
	__m256i loaded = _mm256_maskload_epi32(small + 5, mask);
	_mm256_maskstore_epi32(small + 40, mask, loaded);
	__m256d gathered = _mm256_i32gather_pd(x, _mm_setr_epi32(3, 1, 4, 1), 8);
	__m256i gathered_ints = _mm256_mask_i32gather_epi32(loaded, small, _mm256_set1_epi32(9), mask, 4);
	__m128 few = _mm256_i64gather_ps((const float *)wide, _mm256_setr_epi64x(2, 3, 5, 7), 4);
	sum = _mm256_extract_epi32(loaded, 3) + (int)gathered[2] + _mm256_extract_epi32(gathered_ints, 7) + (few[1] == 0);
#endif
#if defined __AVX512F__
	__m512d more = _mm512_mask_i32gather_pd(_mm512_set1_pd(1), 0x5a, _mm256_set1_epi32(17), x, 8);
	_mm512_mask_i64scatter_pd(z, 0x21, _mm512_setr_epi64(1, 2, 3, 4, 5, 6, 7, 8), more, 8);
	_mm512_mask_compressstoreu_pd(y + 7, 0x8f, more);
	more = _mm512_mask_expandloadu_pd(more, 0x31, x + 9);
	sum += (int)more[4];
#endif
	return sum;
}

int main(void)
{
	for (int i = 0; i < n; i++) {
		x[i] = i * 37 % 101;
		z[i] = i;
		index_of[i] = i * 53 % n;
		small[i] = i % 41;
		wide[i] = i;
	}
	double *volatile one = y, *volatile other = z; // what the compiler shall not know
	conditional(one, other);
	gather(other, one);
	one = x;
	scatter(one, other);
	int extra = intrinsics();
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += x[i] + 2 * y[i] + 3 * z[i] + small[i];
	printf("sum %.17g, extra %d\n", sum, extra);
	return 0;
}
