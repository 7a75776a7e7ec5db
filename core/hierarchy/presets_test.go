package hierarchy

import "testing"

func TestPresetsParse(t *testing.T) {
	if list, err := parsePresets(presetsText); err != nil || len(list) < 15 {
		t.Errorf("%d presets, %v", len(list), err)
	}
}
