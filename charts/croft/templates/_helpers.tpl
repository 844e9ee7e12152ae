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

{{- /* The copies of Secrets, by name, and their sources in the namespace croft-secrets. */}}
{{- define "croft.secretCopies" -}}
{{- $names := keys .Values.copySecrets.names -}}
{{- range append (.Values.tenants | default dict | values) (.Values.platform).tenantDefaults -}}
{{- $names = concat $names ((. | default dict).secrets | default dict | keys) -}}
{{- end -}}
{{- $names | uniq | sortAlpha | toYaml -}}
{{- end -}}

{{- define "croft.secretSources" -}}
{{- $names := values .Values.copySecrets.names -}}
{{- range append (.Values.tenants | default dict | values) (.Values.platform).tenantDefaults -}}
{{- range $name, $copy := (. | default dict).secrets | default dict -}}
{{- $names = append $names (($copy | default dict).from | default $name) -}}
{{- end -}}
{{- end -}}
{{- $names | uniq | sortAlpha | toYaml -}}
{{- end -}}
