{{- define "croft.image" -}}
{{- $repository := required "image.repository: no image of croft is published; write the name of yours, which `make image` builds" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* The platform's own roles, which the operator may write. */}}
{{- define "croft.roles" -}}
{{- $declared := (.Values.platform).roles | default dict | keys -}}
{{- concat $declared .Values.operator.roles | uniq | sortAlpha | toYaml -}}
{{- end -}}
