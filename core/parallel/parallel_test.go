package parallel

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestEach checks that the function do is called once for every number. With only one
// processor, the calls are in ascending order.
func TestEach(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(processors)
		for _, n := range []int{0, 1, 2, 100} {
			calls := make([]atomic.Int32, n)
			last := -1
			Each(n, func(i int) {
				calls[i].Add(1)
				if processors == 1 {
					if i != last+1 {
						t.Errorf("%d after %d", i, last)
					}
					last = i
				}
			})
			for i := range calls {
				if got := calls[i].Load(); got != 1 {
					t.Errorf("%d processors: do was called %[4]d times for the number %[2]d of %[3]d, want once", processors, i, n, got)
				}
			}
		}
	}
}
