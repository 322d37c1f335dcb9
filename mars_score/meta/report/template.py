"""The page as a Jinja2 template, to be rendered with autoescape: every text of a report is data."""

TEMPLATE = """
{%- macro prose(text) -%}
{% if text | length <= long %}{{ text }}{% else %}
<details><summary><span class="start">{{ text | shortened(start) }} </span><span class="more">
{%- for name in ('all', 'less') %}<span class="{{ name }}">show {{ name }}</span>{% endfor %}</span></summary>
{{- text }}</details>{% endif %}
{%- endmacro -%}

{%- macro show_table(block) -%}
{% set table = block.parts[0] %}
{% set tinted = tinted_columns(table) %}
<h3 id="{{ block.id }}">{{ table.title }}</h3>
{% if table.note %}<p class="note">{{ table.note }}</p>{% endif %}
<div class="box" role="region" tabindex="0" aria-labelledby="{{ block.id }}">
<table>
<caption class="hidden">{{ table.title }}</caption>
<thead><tr>{% for column in table.columns %}<th scope="col">{{ column }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}
<tr>{% for text in row %}
{%- if loop.first %}<th scope="row">{{ text }}</th>
{%- else %}<td{{ cell_look(text, loop.index0 in tinted) | xmlattr }}>{{ text }}</td>
{%- endif %}{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
</div>
{%- endmacro -%}

{%- macro show_scatters(block) -%}
<h3 id="{{ block.id }}">{{ block.title }}</h3>
<p class="note">Scores run across, human ratings up.</p>
<div class="multiples">
{% for part in block.parts %}
<figure><figcaption><strong>{{ part.metric }}</strong> <span>{{ part.coefficient }}</span></figcaption>
{{ chart(part) }}</figure>
{% endfor %}
</div>
{%- endmacro -%}

{%- macro show_bars(block) -%}
<div class="bars">
<h3 id="{{ block.id }}">{{ block.title }}</h3>
<figure>{{ chart(block.parts[0]) }}</figure>
</div>
{%- endmacro -%}

{%- macro show_disagreements(block) -%}
<h3 id="{{ block.id }}">{{ block.title }}</h3>
{% for part in block.parts %}
<article class="row">
<h4>{{ part.system }}, {{ part.item }}</h4>
<div class="facts"><span>rating <b>{{ part.rating }}</b></span> <span>score <b>{{ part.score }}</b></span>
<span class="{{ 'above' if part.residual > 0 else 'below' }}">residual {{ part.residual | signed }},
{{ 'scored above its rating' if part.residual > 0 else 'scored below its rating' }}</span></div>
<dl class="texts">
{% if part.context %}<dt>Context</dt><dd dir="auto">{{ prose(part.context) }}</dd>{% endif %}
<dt>{{ 'Reference' if part.references | length == 1 else 'References' }}</dt>
{% for text in part.references %}<dd dir="auto">{{ prose(text) }}</dd>{% else %}<dd>none</dd>{% endfor %}
<dt>Candidate</dt><dd class="candidate" dir="auto">{{ prose(part.candidate) }}</dd>
</dl>
{% if part.augmentations %}
<details class="augmented"><summary>{{ part.augmentations | length }} augmented
{{ 'reference' if part.augmentations | length == 1 else 'references' }}</summary>
<ol>{% for label, similarity, text in part.augmentations %}
<li><span>{{ label }}</span><span>{{ '%.3f' | format(similarity) | true_minus }}</span><span dir="auto">
{{- text }}</span></li>{% endfor %}
</ol></details>
{% endif %}
</article>
{% endfor %}
{%- endmacro -%}

{%- set shown = {
  'table': show_table, 'scatters': show_scatters, 'bars': show_bars, 'disagreements': show_disagreements
} -%}

<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<title>{{ report.title }}</title>
<style>{{ style }}</style>
</head>
<body>
<div class="frame">
<nav class="contents" aria-label="Contents"><details open><summary>Contents</summary>
{% if sections %}
<ol>
{% for section in sections %}
<li><a href="#{{ section.id }}">{{ section.title }}</a>
{% if section.blocks %}
<ol>{% for block in section.blocks %}<li><a href="#{{ block.id }}">{{ block.title }}</a></li>{% endfor %}</ol>
{% endif %}
</li>
{% endfor %}
</ol>
{% endif %}
</details></nav>
<main>
<h1>{{ report.title }}</h1>
{% if report.summary %}
<ul class="summary">{% for line in report.summary %}<li>{{ line }}</li>{% endfor %}</ul>
{% endif %}
{% if report.notices %}
<div class="notices"><h2>Notices</h2>
<ul>{% for line in report.notices %}<li>{{ line }}</li>{% endfor %}</ul></div>
{% endif %}
{% for section in sections %}
<section aria-labelledby="{{ section.id }}">
<h2 id="{{ section.id }}">{{ section.title }}</h2>
{% if section.note %}<p class="note">{{ section.note }}</p>{% endif %}
{% for block in section.blocks %}
{{ shown[block.kind](block) }}
{% else %}
<p class="note">Nothing to show.</p>
{% endfor %}
</section>
{% endfor %}
</main>
</div>
<script>{{ script }}</script>
</body>
</html>
"""
