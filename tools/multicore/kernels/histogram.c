// Values counted by their class: each thread counts for itself, in an array that is its
// own, and adds what it has in a critical section.
#define VALUES 20000
#define CLASSES 64

static unsigned values[VALUES];
static unsigned counts[CLASSES];

int main(void) {
	unsigned state = 99;
	for (int i = 0; i < VALUES; i++) {
		state = state * 1103515245u + 12345u;
		values[i] = state >> 16;
	}
	double sum = 0;
#pragma omp parallel
	{
		unsigned own[CLASSES] = {0};
#pragma omp for reduction(+ : sum)
		for (int i = 0; i < VALUES; i++) {
			own[values[i] % CLASSES]++;
			sum += values[i];
		}
#pragma omp critical
		for (int c = 0; c < CLASSES; c++)
			counts[c] += own[c];
	}
	return sum < 0 || counts[0] > VALUES;
}
