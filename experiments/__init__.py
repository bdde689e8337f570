"""The paper's experiments: real text in, results, tables and figures out.

`corpora` prepares texts, `cells` runs one train–test pair, `results` keeps what came out;
`tables`, `figures` and `page` only read results and never run a model.
"""
