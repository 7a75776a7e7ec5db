package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"os"
	"testing"
)

// TestIcons checks that each icon has the right corners, background and line, and that the manifest
// lists all icons with their sizes.
func TestIcons(t *testing.T) {
	svg, err := os.ReadFile("site/static/icon.svg")
	if err != nil {
		t.Fatal(err)
	}
	d, err := readDrawing(string(svg))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("site/static/manifest.webmanifest")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Icons []struct{ Src, Sizes, Type, Purpose string }
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	for _, icon := range icons {
		picture := d.draw(icon.pixels, icon.maskable)
		want, purpose := color.NRGBA{}, ""
		if icon.maskable {
			want, purpose = color.NRGBA(d.ground), "maskable"
		}
		corner := picture.At(0, 0).(color.NRGBA)
		if corner.A != want.A || want.A > 0 && corner != want {
			t.Errorf("%s: the corner is %v, want %v", icon.name, corner, want)
		}
		if got := picture.At(icon.pixels/2, icon.pixels/20); got != color.Color(color.NRGBA(d.ground)) {
			t.Errorf("%s: the background is %v, want %v", icon.name, got, d.ground)
		}
		if got := picture.At(icon.pixels*34/64, icon.pixels*32/64); got != color.Color(color.NRGBA{255, 255, 255, 255}) {
			t.Errorf("%s: the line is %v, want white", icon.name, got)
		}
		found := false
		for _, listed := range manifest.Icons {
			found = found || listed.Src == icon.name && listed.Sizes == fmt.Sprintf("%dx%d", icon.pixels, icon.pixels) && listed.Type == "image/png" && listed.Purpose == purpose
		}
		if !found {
			t.Errorf("the manifest does not list %s", icon.name)
		}
	}
}
