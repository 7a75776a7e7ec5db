// Threads of the C++ library count what they have done in one atomic number.
// options: -O2 -pthread
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>
static std::atomic<long> done;

static void work(int n) {
#ifdef FIXED
	long own = 0;
	for (int i = 0; i < n; i++)
		own += i & 3;
	done += own;
#else
	for (int i = 0; i < n; i++)
		done.fetch_add(i & 3); // planted: true-sharing
#endif
}

int main() {
	std::vector<std::thread> team;
	for (int i = 0; i < 4; i++)
		team.emplace_back(work, 30000);
	for (auto &t : team)
		t.join();
	std::printf("%ld\n", done.load());
}
