// The points of a map that are higher than a threshold: the store behind the condition keeps the nest from folding.
// options: -O1
#include <cstdio>
#include <vector>
struct Peak { int r, c; };

int main() {
	const int n = 500;
	std::vector<std::vector<float>> map(n, std::vector<float>(n));
	unsigned seed = 1;
	for (auto &row : map)
		for (float &height : row) {
			seed = seed * 1664525u + 1013904223u;
			height = seed >> 8;
		}
	std::vector<Peak> peaks;
	for (int round = 0; round < 2; round++) {
		peaks.clear();
#ifdef FIXED
		for (int r = 0; r < n; r++)
			for (int c = 0; c < n; c++)
#else
		for (int c = 0; c < n; c++)
			for (int r = 0; r < n; r++)
#endif
				if (map[r][c] > 15000000) // planted: stride
					peaks.push_back({r, c});
	}
	std::printf("%zu\n", peaks.size());
}
