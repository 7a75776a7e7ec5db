package answers_test

import (
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
)

func TestMulticoreSeries(t *testing.T) {
	rates := report.Table{Key: "rates"}
	for _, key := range []string{"cores", "level", "method", "global_rate", "low", "high"} {
		rates.Columns = append(rates.Columns, report.Column{Key: key})
	}
	for n, rate := range []float64{0.75, 0.5} {
		cores := report.Count(uint64(n + 1))
		rates.Add(cores, report.TextOf("L1"), report.TextOf("simulated"), report.Ratio(rate), report.None(), report.None())
		rates.Add(cores, report.TextOf("L1"), report.TextOf("sampled"), report.Ratio(rate), report.Ratio(rate-0.25), report.Ratio(rate+0.25))
	}
	rates.Add(report.Count(4), report.TextOf("L1"), report.TextOf("sampled"), report.None(), report.None(), report.None())
	r := &answers.Reply{Tables: []report.Table{rates}}
	want := []answers.Series{
		{Name: "L1", Method: "simulated", Points: []answers.SeriesPoint{{Cores: 1, Value: 0.75}, {Cores: 2, Value: 0.5}}},
		{Name: "L1", Method: "sampled", Points: []answers.SeriesPoint{{1, 0.75, 0.5, 1, true}, {2, 0.5, 0.25, 0.75, true}}},
	}
	if got := r.Rates("global_rate"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := r.Rates("mean_rate"); got != nil {
		t.Errorf("Rates of a column that does not exist = %+v, want nil", got)
	}
	if got := r.SpeedUps("speedup"); got.Points != nil {
		t.Errorf("SpeedUps of a missing table = %+v, want no points", got)
	}
	speed := report.Table{Key: "speedup", Columns: []report.Column{{Key: "cores"}, {Key: "speedup"}}}
	speed.Add(report.Count(4), report.Decimal(3.5))
	r.Tables = append(r.Tables, speed)
	if got := r.SpeedUps("speedup"); !reflect.DeepEqual(got, answers.Series{Points: []answers.SeriesPoint{{Cores: 4, Value: 3.5}}}) {
		t.Errorf("%+v", got)
	}
}
