package state

import "math"

// Part is a part of a map: its rows [From[0], To[0]) and its columns [From[1], To[1]). The zero Part is
// the whole map.
type Part struct{ From, To [2]int }

// axes returns, for the rows and the columns of a map, the ID by which a [Zoom] names the axis, the
// number of cells, and the size of a cell.
func (m *Matrix) axes() (ids [2]string, cells [2]int, steps [2]float64) {
	return [2]string{m.ID + "-rows", m.ID}, [2]int{len(m.Rows), len(m.Columns)}, [2]float64{m.RowStep, m.ColumnStep}
}

// Zoomed returns the map with only the part that the screen shows. An axis without a zoom, or with a
// zoom outside of the map, is shown whole.
func (m *Matrix) Zoomed(s Screen) *Matrix {
	made := *m
	ids, cells, steps := m.axes()
	var part Part
	whole := true
	for axis := range 2 {
		z, n := s.Zoom(ids[axis]), float64(cells[axis])
		const rounding = 1e-4 // URLs contain eight digits
		first, end := math.Floor(z.From/steps[axis]+rounding), math.Ceil(z.To/steps[axis]-rounding)
		if first = max(first, 0); z.From < z.To && first < n && end > first {
			part.From[axis], part.To[axis] = int(first), int(min(end, n))
		} else {
			part.To[axis] = cells[axis]
		}
		whole = whole && part.From[axis] == 0 && part.To[axis] == cells[axis]
	}
	if made.Part = part; whole {
		made.Part = Part{}
	}
	return &made
}

// ZoomedInto returns the screen that shows a part of a map.
func (s Screen) ZoomedInto(m *Matrix, part Part) Screen {
	ids, cells, steps := m.axes()
	for axis := range 2 {
		z := Zoom{Chart: ids[axis]}
		if part.From[axis] > 0 || part.To[axis] < cells[axis] {
			z.From, z.To = float64(part.From[axis])*steps[axis], float64(part.To[axis])*steps[axis]
		}
		s = s.Zoomed(z)
	}
	return s
}
