// A payroll that needs two numbers of each record of a hundred bytes and more.
// options: -O0
#include <stdio.h>
#include <stdlib.h>
struct employee {
#ifndef FIXED
	char name[48], address[64];
	long id;
#endif
	float salary, bonus;
};

int main(void) {
	int n = 15000;
	struct employee *staff = malloc(n * sizeof *staff);
	for (int i = 0; i < n; i++) {
		staff[i].salary = i;
		staff[i].bonus = 1;
	}
	float total = 0;
	for (int year = 0; year < 12; year++)
		for (int i = 0; i < n; i++)
			total += staff[i].salary + staff[i].bonus; // planted: layout
	printf("%g\n", total);
}
