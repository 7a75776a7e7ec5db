package main

import (
	"bytes"
	"errors"
	raster "image"
	"image/color"
	"image/png"
	"math"
	"os"
	"regexp"
	"strconv"
)

// icons lists the pictures that browsers need to install the page as an app, because they do not
// accept icon.svg everywhere. The operating system cuts off the corners of a maskable icon, so its
// drawing is smaller and its background fills the square.
var icons = []struct {
	name     string
	pixels   int
	maskable bool
}{
	{"icon-192.png", 192, false}, {"icon-512.png", 512, false}, {"icon-maskable.png", 512, true},
}

func (b *build) writeIcons() error {
	text, err := os.ReadFile("site/static/icon.svg")
	if err != nil {
		return err
	}
	d, err := readDrawing(string(text))
	if err != nil {
		return err
	}
	for _, icon := range icons {
		var out bytes.Buffer
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		if err := encoder.Encode(&out, d.draw(icon.pixels, icon.maskable)); err != nil {
			return err
		}
		if err := b.write(icon.name, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

type point struct{ x, y float64 }

// drawing is the content of icon.svg: a line on a square with round corners.
type drawing struct {
	side, radius, width float64
	ground              color.RGBA
	line                []point
}

var (
	ground = regexp.MustCompile(`<rect width="(\d+)" height="\d+" rx="(\d+)" fill="#([0-9a-f]{6})"/>`)
	stroke = regexp.MustCompile(`<path d="M(\d+) (\d+)((?:[hv]-?\d+)+)" fill="none" stroke="#fff" stroke-width="(\d+)" stroke-linejoin="round" stroke-linecap="round"/>`)
	move   = regexp.MustCompile(`([hv])(-?\d+)`)
)

// readDrawing reads icon.svg. It supports only the elements that icon.svg contains.
func readDrawing(svg string) (*drawing, error) {
	square, path := ground.FindStringSubmatch(svg), stroke.FindStringSubmatch(svg)
	if square == nil || path == nil {
		return nil, errors.New("site/static/icon.svg must contain a <rect> and a <path> of horizontal and vertical lines")
	}
	rgb, err := strconv.ParseUint(square[3], 16, 24)
	d := &drawing{
		side: parseNumber(square[1]), radius: parseNumber(square[2]), width: parseNumber(path[4]),
		ground: color.RGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 255},
	}
	at := point{parseNumber(path[1]), parseNumber(path[2])}
	d.line = append(d.line, at)
	for _, m := range move.FindAllStringSubmatch(path[3], -1) {
		if m[1] == "h" {
			at.x += parseNumber(m[2])
		} else {
			at.y += parseNumber(m[2])
		}
		d.line = append(d.line, at)
	}
	return d, err
}

// parseNumber returns the value of a number that a regular expression has matched.
func parseNumber(digits string) float64 {
	n, _ := strconv.ParseFloat(digits, 64)
	return n
}

// draw renders the drawing as a square picture. The distance between a pixel's centre and the
// nearest edge determines its coverage.
func (d *drawing) draw(pixels int, maskable bool) raster.Image {
	picture := raster.NewNRGBA(raster.Rect(0, 0, pixels, pixels))
	scale := d.side / float64(pixels)
	shrink := 1.0
	if maskable {
		shrink = 0.8
	}
	middle := d.side / 2
	for y := range pixels {
		for x := range pixels {
			p := point{(float64(x) + 0.5) * scale, (float64(y) + 0.5) * scale}
			opacity := 1.0
			if !maskable {
				opacity = coverage(d.squareDistance(p) / scale)
			}
			inner := point{middle + (p.x-middle)/shrink, middle + (p.y-middle)/shrink}
			white := coverage((d.lineDistance(inner) - d.width/2) * shrink / scale)
			mix := func(c uint8) uint8 { return uint8(math.Round(255*white + float64(c)*(1-white))) }
			picture.SetNRGBA(x, y, color.NRGBA{mix(d.ground.R), mix(d.ground.G), mix(d.ground.B), uint8(math.Round(255 * opacity))})
		}
	}
	return picture
}

// coverage returns the share of a pixel that is inside a shape. The parameter "distance" is the
// distance from the pixel's centre to the edge of the shape, in pixels. It is negative inside the
// shape.
func coverage(distance float64) float64 { return min(max(0.5-distance, 0), 1) }

// squareDistance returns the distance between a point and the square with round corners.
func (d *drawing) squareDistance(p point) float64 {
	half := d.side/2 - d.radius
	x, y := math.Abs(p.x-d.side/2)-half, math.Abs(p.y-d.side/2)-half
	return math.Hypot(max(x, 0), max(y, 0)) + min(max(x, y), 0) - d.radius
}

// lineDistance returns the distance between a point and the line of the drawing.
func (d *drawing) lineDistance(p point) float64 {
	nearest := math.Inf(1)
	for i, from := range d.line[:len(d.line)-1] {
		to := d.line[i+1]
		dx, dy := to.x-from.x, to.y-from.y
		along := ((p.x-from.x)*dx + (p.y-from.y)*dy) / (dx*dx + dy*dy)
		along = min(max(along, 0), 1)
		nearest = min(nearest, math.Hypot(p.x-from.x-along*dx, p.y-from.y-along*dy))
	}
	return nearest
}
