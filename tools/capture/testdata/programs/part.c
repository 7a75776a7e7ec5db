static int table[10];

static __attribute__((constructor)) void begin(void)
{
	for (int i = 0; i < 10; i++)
		table[i] = i;
}

static __attribute__((destructor)) void end(void) { table[0] = 0; }

int NAME(int i) { return table[i] * 2; }
