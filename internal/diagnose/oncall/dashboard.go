package oncall

import (
	"bytes"
	"encoding/json"
)

// Dashboard is a Grafana dashboard.
type Dashboard struct {
	// Name is the file's name and the dashboard's UID.
	Name, Title string
	// Variable is a label whose values can be selected. It may be nil.
	Variable *Variable
	Panels   []Panel
}

// Variable is a selection among the values of a metric's label.
type Variable struct{ Metric, Label string }

// Kind is the type of a panel.
type Kind string

// The types of panels, as Grafana names them.
const (
	Graph  Kind = "timeseries"
	Number Kind = "stat"
	Table  Kind = "table"
)

// Panel is a part of a dashboard.
type Panel struct {
	Title string
	Kind  Kind
	// Unit is Grafana's unit, such as s or percentunit. It is "" for plain numbers.
	Unit string
	// Description is the description that Grafana shows at the title.
	Description string
	Queries     []Query
}

// Query is a query in a panel.
type Query struct {
	Expr string
	// Legend names each series by its labels.
	Legend string
}

// The sizes of panels on Grafana's grid, which is 24 wide.
const (
	gridWidth                 = 24
	numberWidth, numberHeight = 6, 4
	graphWidth, graphHeight   = 12, 8
)

// dashboardSchema is the version of Grafana's format. Later Grafana versions read it, too.
const dashboardSchema = 39

var source = map[string]string{"type": "prometheus", "uid": "${datasource}"}

// JSON returns the dashboard in the format that Grafana imports.
func (d Dashboard) JSON() ([]byte, error) {
	variables := []any{map[string]any{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}
	if v := d.Variable; v != nil {
		query := "label_values(" + v.Metric + ", " + v.Label + ")"
		variables = append(variables, map[string]any{
			"name": v.Label, "type": "query", "datasource": source, "query": query, "definition": query,
			"refresh": 2, "multi": true, "includeAll": true, "allValue": ".*", "sort": 1,
			"current": map[string]any{"text": "All", "value": "$__all"},
		})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(map[string]any{
		"uid": d.Name, "title": d.Title, "tags": []string{"croft"}, "schemaVersion": dashboardSchema,
		"editable": true, "refresh": "30s", "time": map[string]string{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": variables}, "panels": d.renderPanels(),
	})
	return text.Bytes(), err
}

func (d Dashboard) renderPanels() []any {
	var all []any
	x, y, row := 0, 0, 0
	for i, p := range d.Panels {
		width, height := graphWidth, graphHeight
		if p.Kind == Number {
			width, height = numberWidth, numberHeight
		}
		if x+width > gridWidth || row != 0 && row != height {
			x, y = 0, y+row
		}
		row = height
		all = append(all, p.renderPanel(i+1, map[string]int{"x": x, "y": y, "w": width, "h": height}))
		x += width
	}
	return all
}

func (p Panel) renderPanel(id int, at map[string]int) map[string]any {
	var targets []any
	for i, q := range p.Queries {
		target := map[string]any{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.Expr, "legendFormat": q.Legend,
		}
		if p.Kind != Graph {
			target["instant"] = true
		}
		if p.Kind == Table {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	return map[string]any{
		"id": id, "title": p.Title, "description": p.Description, "type": string(p.Kind), "datasource": source, "gridPos": at, "targets": targets,
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.Unit}, "overrides": []any{}},
	}
}
