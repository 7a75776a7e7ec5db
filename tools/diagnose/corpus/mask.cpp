// Two steps over vectors, which the compiler unrolls differently.
// options: -O3
#include <cstdio>
#include <vector>

int main() {
	std::vector<int> a(300000), b(300000), c(300000);
	for (size_t i = 0; i < a.size(); i++)
		a[i] = i;
	for (int key = 0; key < 4; key++) {
#ifdef FIXED
		for (size_t i = 0; i < a.size(); i++) {
			b[i] = a[i] + key;
			c[i] = b[i] ^ a[i];
		}
#else
		for (size_t i = 0; i < a.size(); i++)
			b[i] = a[i] + key;
		for (size_t i = 0; i < a.size(); i++)
			c[i] = b[i] ^ a[i]; // planted: fusion
#endif
	}
	std::printf("%d %d\n", c[7], b[9]);
}
