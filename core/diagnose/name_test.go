package diagnose

import "testing"

func TestShortName(t *testing.T) {
	for name, want := range map[string]string{
		"main":           "main",
		"_QQmain":        "_QQmain",
		"Walker::step()": "Walker::step",
		"std::vector<float, std::allocator<float> > column_means<float>(std::vector<std::vector<float> > const&)": "column_means",
		"(anonymous namespace)::Map::has(unsigned long) const":                                                    "Map::has",
		"Matrix<double>::operator()(int, int) const":                                                              "Matrix::operator()",
		"bool operator< <int>(A<int> const&, A<int> const&)":                                                      "operator<",
		"std::ostream& operator<<(std::ostream&, P const&)":                                                       "operator<<",
		"main::{lambda(int)#1}::operator()(int) const":                                                            "main::lambda::operator()",
		"void count<std::less<int> >(int*)":                                                                       "count",
		"half(":                                                                                                   "half(",
	} {
		if got := shortName(name); got != want {
			t.Errorf("shortName(%s) = %s, want %s", name, got, want)
		}
	}
}
