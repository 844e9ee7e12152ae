package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/walls/wall"
)

// These are the numbers of tenants for which rendering is measured. The first includes a fixed
// time for any file.
const (
	renderOne  = 1
	renderFew  = 100
	renderMany = 1000

	renderRuns = 5
)

// measureRender compares `croft render` with its lower bound, and large files with small ones.
func measureRender(ctx context.Context, b *bench) ([]comparison, error) {
	sizes := []int{renderOne, renderFew, renderMany}
	texts := make([]string, len(sizes))
	for i, size := range sizes {
		texts[i] = tenants.Platform + tenants.RenderText("tenant", size)
	}
	built, err := tenants.Build(texts[len(texts)-1])
	if err != nil {
		return nil, err
	}
	objects := wall.Objects(built)

	raw := struct {
		Render  map[int][]float64 `json:"renderSecondsByTenants"`
		Marshal []float64         `json:"marshalSeconds"`
		Objects int               `json:"objects"`
	}{Render: map[int][]float64{}, Objects: len(objects)}
	err = withFiles(func(paths []string) error {
		for run := range renderRuns {
			printProgress("render: run %d of %d", run+1, renderRuns)
			for i, size := range sizes {
				took, err := timeSeconds(func() error { return b.runCroft(ctx, "render", "-f", paths[i]) })
				if err != nil {
					return err
				}
				raw.Render[size] = append(raw.Render[size], took)
			}
			took, err := timeSeconds(func() error { return marshalAll(objects) })
			if err != nil {
				return err
			}
			raw.Marshal = append(raw.Marshal, took)
		}
		return nil
	}, texts...)
	if err != nil {
		return nil, err
	}

	one, few, many := samples.Median(raw.Render[renderOne]), samples.Median(raw.Render[renderFew]), samples.Median(raw.Render[renderMany])
	return []comparison{{
		Name: fmt.Sprintf("render %d tenants", renderMany), Unit: inSeconds, Raw: raw,
		Croft: many, Alternative: samples.Median(raw.Marshal),
		Note: fmt.Sprintf("compared with marshalling the same %d objects from memory; medians of %d, in turns", len(objects), renderRuns),
	}, {
		Name: "render one tenant more", Unit: inSeconds,
		Croft: (many - one) / (renderMany - renderOne), Alternative: (few - one) / (renderFew - renderOne),
		Note: fmt.Sprintf("among %d, compared with among %d: 1 is linear", renderMany, renderFew),
	}}, nil
}

// marshalAll converts objects to YAML and discards the result.
func marshalAll(objects []client.Object) error {
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		if _, err := yaml.Marshal(content); err != nil {
			return err
		}
	}
	return nil
}
