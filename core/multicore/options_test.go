package multicore

import "testing"

func TestSchedules(t *testing.T) {
	for _, text := range []string{"static", "static,1", "dynamic", "dynamic,4", "guided,16"} {
		s, err := ParseSchedule(text)
		if err != nil || s.String() != text {
			t.Errorf("ParseSchedule(%s) = %s, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "auto", "static,", "static,0", "dynamic,-1", "guided,x", "static,1,2", "Static", "static,9223372036854775808"} {
		if s, err := ParseSchedule(text); err == nil {
			t.Errorf("ParseSchedule(%q) = %s, want an error", text, s)
		}
	}
}

func TestDivisionNames(t *testing.T) {
	for d := ByIterations; d <= AsPrinted; d++ {
		if back, err := ParseDivision(d.String()); err != nil || back != d {
			t.Errorf("%s: %v, %v", d, back, err)
		}
	}
	if _, err := ParseDivision("unknown"); err == nil {
		t.Error("ParseDivision accepted an unknown name")
	}
}

func TestCoresWithinBounds(t *testing.T) {
	for cores, fine := range map[int]bool{-1: false, 0: false, 1: true, 64: true, 65: false} {
		o := Options{Cores: cores}
		if err := o.Check(); err == nil != fine {
			t.Errorf("%d cores: %v", cores, err)
		}
	}
}
