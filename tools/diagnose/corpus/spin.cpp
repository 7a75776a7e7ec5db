// Totals of four threads behind a spin lock, which is in another line than the totals.
// options: -O2 -pthread
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>
class SpinLock {
	std::atomic_flag flag = ATOMIC_FLAG_INIT;
public:
	void lock() { while (flag.test_and_set(std::memory_order_acquire)) std::this_thread::yield(); }
	void unlock() { flag.clear(std::memory_order_release); }
};
static SpinLock guard;
static double total;
static long items;

static void add(double v) {
	guard.lock();
	total += v; // planted: true-sharing
	items++;
	guard.unlock();
}

static void work(const std::vector<double> &data, size_t from, size_t to) {
#ifdef FIXED
	double sum = 0;
	for (size_t i = from; i < to; i++)
		sum += data[i] * 0.5;
	add(sum);
#else
	for (size_t i = from; i < to; i++)
		add(data[i] * 0.5);
#endif
}

int main() {
	std::vector<double> data(100000, 1.25);
	std::vector<std::thread> team;
	for (size_t t = 0; t < 4; t++)
		team.emplace_back(work, std::cref(data), t * 25000, (t + 1) * 25000);
	for (auto &t : team)
		t.join();
	std::printf("%g %ld\n", total, items);
}
