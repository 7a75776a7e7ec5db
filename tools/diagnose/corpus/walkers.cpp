// Random walkers in a pool of threads, each with its own state in a vector.
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

struct
#ifdef FIXED
alignas(64)
#endif
Walker {
	uint32_t state;
	int32_t x;
	void __attribute__((noinline)) step() {
		state = state * 1664525u + 1013904223u; // planted: false-sharing
		x += (state >> 31) ? 1 : -1;
	}
};

static void work(Walker *w, int steps) {
	for (int i = 0; i < steps; i++) w->step();
}

int main() {
	std::vector<Walker> walkers(4);
	for (unsigned i = 0; i < 4; i++) walkers[i].state = i * 17 + 1;
	std::vector<std::thread> pool;
	for (auto &w : walkers) pool.emplace_back(work, &w, 150000);
	for (auto &t : pool) t.join();
	int sum = 0;
	for (auto &w : walkers) sum += w.x;
	std::printf("%d\n", sum);
}
