"""The mark inside other packages: each file needs its own package, and none is imported unless asked for.

- ``sentence_transformers``: a module at the end of a SentenceTransformer
- ``langchain``: an Embeddings that marks what another one returns
- ``llama_index``: the same for LlamaIndex
- ``datasets``: a function for Dataset.map
"""
