package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/price"
)

const (
	// metricsTimeout limits the time of a request to Karpenter, and maxMetrics its size.
	metricsTimeout = 10 * time.Second
	maxMetrics     = 64 << 20
)

// PriceFiles are the sources of prices, which are read every minute. Both may be empty.
type PriceFiles struct {
	// Prices is the path of the platform's file of prices.
	Prices string
	// Metrics is the path or the URL of Karpenter's metrics.
	Metrics string
}

// Load reads both sources.
func (f PriceFiles) Load(ctx context.Context) (*price.List, error) {
	prices, err := f.loadFile()
	if err != nil || f.Metrics == "" {
		return prices, err
	}
	text, err := f.readMetrics(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of Karpenter: %w", err)
	}
	return prices, prices.AddEstimates(f.Metrics, text)
}

func (f PriceFiles) loadFile() (*price.List, error) {
	if f.Prices == "" {
		return price.New(), nil
	}
	data, err := os.ReadFile(f.Prices)
	if err != nil {
		return nil, err
	}
	return price.Parse(filepath.Base(f.Prices), data)
}

func (f PriceFiles) readMetrics(ctx context.Context) ([]byte, error) {
	if !strings.HasPrefix(f.Metrics, "http://") && !strings.HasPrefix(f.Metrics, "https://") {
		return os.ReadFile(f.Metrics)
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.Metrics, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxMetrics))
}

// priceReader reads prices again and again.
type priceReader struct {
	PriceFiles
	log *slog.Logger
	// last are the metrics of the last successful read.
	last []byte
}

// read returns the current prices. While Karpenter does not answer, its last prices stay.
func (r *priceReader) read(ctx context.Context) (*price.List, error) {
	prices, err := r.loadFile()
	if err != nil || r.Metrics == "" {
		return prices, err
	}
	text, err := r.readMetrics(ctx)
	if err == nil {
		err = prices.AddEstimates(r.Metrics, text)
	}
	if err == nil {
		r.last = text
		return prices, nil
	}
	r.log.WarnContext(ctx, "Karpenter's prices cannot be read: the last ones stay", "error", err)
	if r.last != nil {
		err = prices.AddEstimates(r.Metrics, r.last)
	} else {
		err = nil // the prices of other sources count
	}
	return prices, err
}
