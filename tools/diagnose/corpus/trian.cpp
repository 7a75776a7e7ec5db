// Distances between strings in a triangle of pairs, by std::thread, each with the same number of rows.
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>
static int differ(const std::string &a, const std::string &b) {
	int d = 0;
	for (size_t i = 0; i < a.size(); i++) d += a[i] != b[i];
	return d;
}
static void rows(const std::vector<std::string> &w, int from, int to, int by, long *out) {
	long s = 0;
	for (int i = from; i < to; i += by)
		for (int j = 0; j < i; j++)
			s += differ(w[i], w[j]); // planted: imbalance
	*out = s;
}
int main() {
	std::vector<std::string> w(400, std::string(24, 'a'));
	for (size_t i = 0; i < w.size(); i++) w[i][i % 24] = 'b';
	long out[4 * 8] = {0};
	std::vector<std::thread> t;
	for (int k = 0; k < 4; k++)
#ifdef FIXED
		t.emplace_back(rows, std::cref(w), k, 400, 4, &out[k * 8]);
#else
		t.emplace_back(rows, std::cref(w), k * 100, (k + 1) * 100, 1, &out[k * 8]);
#endif
	for (auto &x : t) x.join();
	std::printf("%ld\n", out[0] + out[8] + out[16] + out[24]);
}
