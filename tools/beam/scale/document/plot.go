package document

import (
	"bytes"
	"fmt"
	"math"

	"github.com/stackglass/stackglass/tools/beam/scale"
	"github.com/stackglass/stackglass/tools/beam/scale/measure"
)

// The plot has a panel for each pattern. It shows the speed-up over the number of workers, on
// logarithmic axes.
const (
	panelWidth, panelHeight = 380.0, 330.0
	left, top, between      = 56.0, 44.0, 60.0
	mostDoublings           = 10 // doublings of the workers, and of the speed-up
)

var colours = []string{"#1b6ca8", "#2a9d5c", "#c98a00", "#c0392b", "#7d3c98"}

// plot draws the speed-up for 10¹² references.
func (d *document) plot() []byte {
	const references = 1e12
	var b bytes.Buffer
	width := left + panelWidth + between + panelWidth + 110
	height := top + panelHeight + 46
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="white"/>`+"\n", width, height)
	for i, p := range measure.Patterns {
		x0 := left + float64(i)*(panelWidth+between)
		at := func(workers, speedup float64) (x, y float64) {
			return x0 + panelWidth*math.Log2(workers)/mostDoublings, top + panelHeight*(1-max(0, min(1, (math.Log2(speedup)+1)/(mostDoublings+1))))
		}
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle" font-size="14">%s of 10¹² references</text>`+"\n", x0+panelWidth/2, top-18, p)
		for n := 0; n <= mostDoublings; n += 2 {
			v := math.Exp2(float64(n))
			x, y := at(v, v)
			fmt.Fprintf(&b, `<path d="M%.1f %gV%gM%g %.1fH%g" stroke="#ddd" fill="none"/>`+"\n", x, top, top+panelHeight, x0, y, x0+panelWidth)
			fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text><text x="%g" y="%.1f" text-anchor="end">%s</text>`+"\n", x, top+panelHeight+17, digits(v), x0-6, y+4, digits(v))
		}
		x1, y1 := at(1, 1)
		x2, y2 := at(1<<mostDoublings, 1<<mostDoublings)
		fmt.Fprintf(&b, `<path d="M%.1f %.1fL%.1f %.1f" stroke="#888" stroke-dasharray="4 4" fill="none"/>`+"\n", x1, y1, x2, y2)
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">workers</text>`+"\n", x0+panelWidth/2, top+panelHeight+36)
		for k, footprint := range []float64{1e6, 1e7, 1e8, 1e9, 1e10} {
			path := "M"
			for n := 0.0; n <= mostDoublings; n += 0.25 {
				workers := math.Round(math.Exp2(n))
				e := scale.Predict(scale.Of(references, footprint, workers), d.costs[p], &d.m.Fixed)
				x, y := at(workers, e.Speedup())
				path += fmt.Sprintf("%.1f %.1fL", x, y)
			}
			fmt.Fprintf(&b, `<path d="%s" stroke="%s" stroke-width="2" fill="none"/>`+"\n", path[:len(path)-1], colours[k])
			if i == len(measure.Patterns)-1 {
				y := top + 14 + 20*float64(k)
				fmt.Fprintf(&b, `<path d="M%g %gh18" stroke="%s" stroke-width="2"/><text x="%g" y="%g">%s lines</text>`+"\n", x0+panelWidth+14, y, colours[k], x0+panelWidth+38, y+4, power(footprint))
			}
		}
	}
	fmt.Fprintf(&b, `<text transform="translate(16 %g) rotate(-90)" text-anchor="middle">speed-up over an undivided pass on one processor</text>`+"\n</svg>\n", top+panelHeight/2)
	return b.Bytes()
}
