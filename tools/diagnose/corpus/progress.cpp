// options: -O2 -pthread
// Threads report each element that they have done in one atomic counter.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>
template <class T> struct job {
	std::vector<T> data;
	std::atomic<long> done{0};
	explicit job(size_t n) : data(n) {}
	void work(size_t from, size_t to) {
		for (size_t i = from; i < to; i++) {
			data[i] = data[i] * 2 + 1;
#ifndef FIXED
			done.fetch_add(1); // planted: true-sharing
#endif
		}
#ifdef FIXED
		done.fetch_add(to - from);
#endif
	}
};
int main() {
	job<float> j(160000);
	std::vector<std::thread> team;
	for (int t = 0; t < 4; t++)
		team.emplace_back([&j, t] { j.work(t * 40000, (t + 1) * 40000); });
	for (auto &t : team)
		t.join();
	std::printf("%ld\n", j.done.load());
}
