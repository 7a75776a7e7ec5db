// irregular: an interpreter of a small stack machine, in a loop with a hash table
#include <stdio.h>

enum { PUSH, ADD, MUL, LOAD, STORE, JUMP, DEC, HASH, HALT };

struct instruction { int op, argument; };

static long stack[64], variables[32], table[1 << 15];

static long run(const struct instruction *code) {
	const struct instruction *pc = code;
	long *top = stack;
	for (;;) {
		struct instruction i = *pc++;
		switch (i.op) {
		case PUSH: *top++ = i.argument; break;
		case ADD: top--; top[-1] += *top; break;
		case MUL: top--; top[-1] *= *top; break;
		case LOAD: *top++ = variables[i.argument]; break;
		case STORE: variables[i.argument] = *--top; break;
		case JUMP: if (*--top) pc = code + i.argument; break;
		case DEC: variables[i.argument]--; break;
		case HASH: {
			unsigned long slot = (unsigned long)top[-1] * 2654435761u % (1 << 15);
			table[slot] += top[-1];
			top[-1] = table[slot];
			break;
		}
		case HALT: return variables[0];
		}
	}
}

int main(void) {
	static const struct instruction code[] = {
		{PUSH, 250000}, {STORE, 1},
		{LOAD, 0}, {PUSH, 3}, {MUL, 0}, {LOAD, 1}, {ADD, 0}, {HASH, 0}, {STORE, 0},
		{LOAD, 1}, {LOAD, 0}, {ADD, 0}, {STORE, 2}, {DEC, 1}, {LOAD, 1}, {JUMP, 2}, {HALT, 0},
	};
	printf("%ld\n", run(code));
}
