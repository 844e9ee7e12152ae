package karpenter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/karpenter/pkg/events"
)

// NewRecorder returns Karpenter's event recorder. It writes events of the core group with the
// component "karpenter". The manager's own recorder is deprecated.
func NewRecorder(ctx context.Context, mgr manager.Manager) (events.Recorder, error) {
	client, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return events.NewRecorder(broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: "karpenter"})), nil
}
