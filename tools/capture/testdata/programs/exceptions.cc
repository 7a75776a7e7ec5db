#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static long total, unwound;

struct guard {
	~guard() { unwound++; }
};

static void add(int i)
{
	std::lock_guard<std::mutex> held(lock);
	guard g;
	if (i % 7 == 0)
		throw std::runtime_error(std::to_string(i));
	total += i;
}

static volatile bool going;

// Is cancelled: its frames are unwound without an exception that it could catch.
static void *go_on(void *)
{
	guard g;
	for (;;) {
		going = true;
		pthread_testcancel();
	}
}

static void cancel_one()
{
	pthread_t t;
	if (pthread_create(&t, nullptr, go_on, nullptr) != 0)
		throw std::runtime_error("no thread");
	while (!going)
		std::this_thread::yield();
	pthread_cancel(t);
	pthread_join(t, nullptr);
}

int main()
{
	std::vector<std::thread> threads;
	for (int t = 0; t < 3; t++)
		threads.emplace_back([t] {
			for (int i = 0; i < 100; i++)
				try {
					add(i + t);
				} catch (const std::exception &e) {
					std::lock_guard<std::mutex> held(lock);
					total += (long)std::string(e.what()).size();
				}
		});
	for (auto &t : threads)
		t.join();
	cancel_one();
	std::map<std::string, int> words;
	for (const char *w : {"one", "two", "three", "two"})
		words[w]++;
	std::vector<int> v(100);
	for (int i = 0; i < 100; i++)
		v[i] = i * 37 % 101;
	std::sort(v.begin(), v.end());
	std::printf("%ld %ld %d %d\n", total, unwound, words["two"], v[50]);
	return 2;
}
