// Exceptions, objects and templates.
#include "throw.h"
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <thread>

static int alive = 0;
struct guard {
	std::string name;
	explicit guard(const char *s) : name(s) { alive++; }
	~guard() { alive--; }
};

struct shape {
	virtual double area() const = 0;
	virtual ~shape() = default;
};
struct square : shape {
	double side;
	explicit square(double s) : side(s) {}
	double area() const override { return side * side; }
};
struct circle : shape {
	double radius;
	explicit circle(double r) : radius(r) { if (r < 0) throw radius; }
	double area() const override { return 3 * radius * radius; }
};

static int deep(int n)
{
	guard g("a string long enough to be on the heap");
	if (n == 0)
		throw n + 42;
	try {
		return deep(n - 1) + 1;
	} catch (const std::exception &) {
		return -1;
	}
}

int main()
{
	std::vector<int> list;
	int caught = 0, sum = 0;
	for (int i = 0; i < 50; i++) {
		try {
			sum += shared(list, i);
		} catch (const std::runtime_error &e) {
			caught += (int)std::string(e.what()).size();
		}
	}
	std::printf("list %zu, caught %d, sum %d, other %ld\n", list.size(), caught, sum, other_file(30));
	try {
		deep(5);
	} catch (int n) {
		std::printf("deep %d, alive %d\n", n, alive);
	}
	double area = 0;
	for (int i = -2; i < 4; i++) {
		try {
			std::unique_ptr<shape> s(i % 2 ? (shape *)new square(i) : new circle(i));
			area += s->area();
		} catch (double r) {
			area += 1000 * r;
		}
	}
	std::map<std::string, std::vector<double>> table;
	for (int i = 0; i < 40; i++)
		table["key" + std::to_string(i % 9)].push_back(i);
	for (auto &[key, values] : table)
		area += (double)key.size() * values.at(1);
	std::atomic<long> total{0};
	std::vector<std::thread> threads;
	for (int t = 0; t < 3; t++)
		threads.emplace_back([&total, t] {
			for (int i = 0; i < 100; i++)
				total += i * t;
		});
	for (auto &t : threads)
		t.join();
	std::printf("area %g, total %ld, calls %d\n", area, total.load(), calls_of_shared);
	try {
		table["key1"].at(100) = 1;
	} catch (const std::out_of_range &) {
		return 5;
	}
	return 0;
}
