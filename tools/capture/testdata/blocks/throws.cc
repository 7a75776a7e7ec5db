// Exceptions through frames that know nothing of them, that clean up, that catch others,
// in recursive functions, and caught by the library.
#include <cstdio>
#include <functional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Counted {
	static int alive;
	Counted() { alive++; }
	~Counted() { alive--; }
};
int Counted::alive = 0;

__attribute__((noinline)) static int thrower(int n)
{
	if (n % 3 == 0)
		throw std::runtime_error("three");
	if (n % 7 == 0)
		throw n;
	return n;
}
__attribute__((noinline)) static int passes(int n) { return thrower(n) + 1; }
__attribute__((noinline)) static int cleans(int n)
{
	Counted c;
	return passes(n) + Counted::alive;
}
__attribute__((noinline)) static int catches(int n)
{
	try {
		return cleans(n);
	} catch (int caught) {
		return -caught;
	}
}
__attribute__((noinline)) static int deep(int depth, int n)
{
	if (depth == 0)
		return catches(n);
	try {
		Counted c;
		return deep(depth - 1, n) + 1;
	} catch (const std::logic_error &) {
		return 0;
	} catch (const std::runtime_error &) {
		if (depth % 4)
			throw;
		return 100 + depth;
	}
}

// The stream catches what its buffer throws.
struct Full : std::streambuf {
	int room = 5;
	int overflow(int c) override
	{
		if (room-- == 0)
			throw std::runtime_error("full");
		return c;
	}
};

int main()
{
	long sum = 0;
	for (int i = 1; i < 60; i++)
		sum += deep(i % 9 + 4, i);
	std::vector<std::function<int(int)>> all{passes, catches, [](int n) { return n * 2; }};
	for (int i = 1; i < 40; i++) {
		try {
			sum += all[i % 3](i);
		} catch (const std::exception &e) {
			sum += e.what()[0];
		} catch (...) {
			sum += 7;
		}
	}
	Full full;
	std::ostream out(&full);
	for (int i = 0; i < 9; i++)
		out << 'x';
	printf("%ld %d %d\n", sum, Counted::alive, out.bad());
	return 0;
}
