// A template class of matrices whose norm goes over the columns of a row-major store.
#include <cstdio>
#include <vector>
template <class T> class matrix {
	size_t rows, columns;
	std::vector<T> cell;

public:
	matrix(size_t r, size_t c) : rows(r), columns(c), cell(r * c, T(1)) {}
	T &at(size_t r, size_t c) { return cell[r * columns + c]; }
	void scale(T by) {
#ifdef FIXED
		for (size_t r = 0; r < rows; r++)
			for (size_t c = 0; c < columns; c++)
#else
		for (size_t c = 0; c < columns; c++)
			for (size_t r = 0; r < rows; r++)
#endif
				at(r, c) *= by; // planted: stride
	}
};

int main() {
	matrix<double> m(700, 700);
	m.scale(1.5);
	m.scale(0.5);
	std::printf("%g\n", m.at(3, 4));
}
