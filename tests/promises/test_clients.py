"""The clients that people have work unchanged, with their default settings.

The newest ``openai`` of the development extras runs in this process; older ones, LangChain's, LlamaIndex's and npm's
are installed into a folder of the test cache, once, and run in a process each.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import openai
import pytest
from tests.support.gateways import MODEL, vectors_of

TEXTS = ["the first text", "a second one", "und noch einer"]
TOKENS = [[1, 2, 3], [4, 5], [6]]
INPUTS = {"text": TEXTS[0], "texts": TEXTS, "tokens": TOKENS[0], "nested": TOKENS}


@pytest.fixture(scope="module")
def serving(module_serving):
    return module_serving()[0]


def wanted(marker, inputs) -> np.ndarray:
    listed = [inputs] if isinstance(inputs, str) or isinstance(inputs[0], int) else inputs
    return marker.transform(vectors_of(listed))


def decoded(answer) -> np.ndarray:
    return np.stack(
        [
            np.frombuffer(base64.b64decode(item.embedding), "<f4")
            if isinstance(item.embedding, str)
            else np.float32(item.embedding)
            for item in answer.data
        ]
    )


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("encoding", [None, "float", "base64"])
@pytest.mark.parametrize("kind", INPUTS)
def test_the_newest_openai_client(serving, key_marker, kind, encoding, asynchronous):
    given = {"model": MODEL, "input": INPUTS[kind], **({} if encoding is None else {"encoding_format": encoding})}
    address = {"base_url": f"{serving.url}/v1", "api_key": "anything"}

    async def ask():
        async with openai.AsyncOpenAI(**address) as client:
            return await client.embeddings.create(**given)

    if asynchronous:
        answer = asyncio.run(ask())
    else:
        with openai.OpenAI(**address) as client:
            answer = client.embeddings.create(**given)
    np.testing.assert_array_equal(decoded(answer), wanted(key_marker, INPUTS[kind]))
    assert [item.index for item in answer.data] == list(range(len(answer.data)))
    assert answer.model == MODEL
    assert answer.usage.total_tokens > 0


def test_the_newest_openai_client_sees_errors_as_it_knows_them(serving):
    with openai.OpenAI(base_url=f"{serving.url}/v1", api_key="anything", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == [MODEL]
        assert client.models.retrieve(MODEL).object == "model"
        with pytest.raises(openai.NotFoundError) as refused:
            client.embeddings.create(model="another", input="a")
        assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model=MODEL, input="")
        assert len(client.embeddings.create(model=MODEL, input="a", dimensions=8).data[0].embedding) == 8


def install(request, name: str, command: list[str], check: str) -> Path:
    """Install into a folder of the test cache unless it is there; other workers wait meanwhile."""
    cache = Path(request.config.cache.mkdir("regionmarker-clients"))
    folder = cache / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}"
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
            if done.returncode or not (folder / check).exists():
                shutil.rmtree(folder, ignore_errors=True)
                pytest.skip(f"{name} cannot be installed from the package registry: {done.stderr[-200:]}")
            (folder / "done").touch()
    return folder


def pip(request, name: str, check: str, *packages: str) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", "."]
    return install(request, name, [*command, *packages], check)


def run(serving, folder: Path, *command: str) -> list[list[list[float]]]:
    """Run a client's program; it prints the vectors of what it asked."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "OPENAI_BASE_URL": f"{serving.url}/v1"}
    environment["OPENAI_API_BASE"] = environment["OPENAI_BASE_URL"]  # what LlamaIndex looks at
    environment |= {
        "OPENAI_API_KEY": "anything",
        "MODEL": MODEL,
        "INPUTS": json.dumps(INPUTS),
        "TEXTS": json.dumps(TEXTS),
    }
    environment |= {"TIKTOKEN_CACHE_DIR": str(folder), "NODE_PATH": str(folder / "node_modules")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


OPENAI = """
import asyncio, json, os, openai
inputs, model = json.loads(os.environ["INPUTS"]), os.environ["MODEL"]
client = openai.OpenAI()
found = [[item.embedding for item in client.embeddings.create(model=model, input=one).data] for one in inputs.values()]
async def ask():
    async with openai.AsyncOpenAI() as other:
        return await other.embeddings.create(model=model, input=inputs["texts"], encoding_format="float")
found.append([item.embedding for item in asyncio.run(ask()).data])
assert openai.__version__.startswith("MAJOR."), openai.__version__
print(json.dumps(found))
"""


def check_openai(serving, key_marker, folder: Path, major: str) -> None:
    found = run(serving, folder, sys.executable, "-c", OPENAI.replace("MAJOR", major))
    for vectors, inputs in zip(found, [*INPUTS.values(), TEXTS], strict=True):
        np.testing.assert_array_equal(np.float32(vectors), wanted(key_marker, inputs))


def test_openai_1(serving, key_marker, request):
    check_openai(serving, key_marker, pip(request, "openai-1", "openai", "openai<2"), "1")


FRAMEWORKS = ("frameworks", "llama_index", "openai>=2,<3", "langchain-openai", "llama-index-embeddings-openai")


def test_openai_2(serving, key_marker, request):
    check_openai(serving, key_marker, pip(request, *FRAMEWORKS), "2")


LANGCHAIN = """
import asyncio, json, os
import tiktoken, tiktoken.registry
# The real vocabulary is downloaded on first use. This one has a token a byte, and goes over the wire in the same way.
small = tiktoken.Encoding("small", pat_str=".", mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={})
tiktoken.registry.ENCODINGS["cl100k_base"] = small
from langchain_openai import OpenAIEmbeddings
texts = json.loads(os.environ["TEXTS"])
by_default = OpenAIEmbeddings(model=os.environ["MODEL"])
in_texts = OpenAIEmbeddings(model=os.environ["MODEL"], check_embedding_ctx_length=False)
print(json.dumps([
    by_default.embed_documents(texts), [by_default.embed_query(texts[0])],
    asyncio.run(by_default.aembed_documents(texts)),
    in_texts.embed_documents(texts), asyncio.run(in_texts.aembed_documents(texts)),
]))
"""


def test_langchain(serving, key_marker, request):
    folder = pip(request, *FRAMEWORKS)
    tokens = [list(text.encode()) for text in TEXTS]
    found = run(serving, folder, sys.executable, "-c", LANGCHAIN)
    for vectors, inputs in zip(found, [tokens, tokens[:1], tokens, TEXTS, TEXTS], strict=True):
        np.testing.assert_allclose(np.float32(vectors), key_marker.transform(vectors_of(inputs)), rtol=0, atol=1e-7)


LLAMA_INDEX = """
import asyncio, json, os
from llama_index.embeddings.openai import OpenAIEmbedding
texts = json.loads(os.environ["TEXTS"])
model = OpenAIEmbedding(model_name=os.environ["MODEL"])
print(json.dumps([
    model.get_text_embedding_batch(texts), [model.get_text_embedding(texts[0])],
    asyncio.run(model.aget_text_embedding_batch(texts)),
]))
"""


def test_llama_index(serving, key_marker, request):
    found = run(serving, pip(request, *FRAMEWORKS), sys.executable, "-c", LLAMA_INDEX)
    for vectors, inputs in zip(found, [TEXTS, TEXTS[:1], TEXTS], strict=True):
        np.testing.assert_array_equal(np.float32(vectors), wanted(key_marker, inputs))


NPM = """
import OpenAI from "openai";
const client = new OpenAI();
const found = [];
for (const input of Object.values(JSON.parse(process.env.INPUTS))) {
  const answer = await client.embeddings.create({ model: process.env.MODEL, input });
  found.push(answer.data.map((item) => Array.from(item.embedding)));
}
const plain = { model: process.env.MODEL, input: JSON.parse(process.env.TEXTS), encoding_format: "float" };
found.push((await client.embeddings.create(plain)).data.map((item) => item.embedding));
console.log(JSON.stringify(found));
"""


def test_npm_openai(serving, key_marker, request, program):
    node, npm = program("node"), shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed beside node: the npm client cannot be fetched")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", ".", "openai"]
    folder = install(request, "npm", command, "node_modules/openai/package.json")
    (folder / "ask.mjs").write_text(NPM)
    found = run(serving, folder, node, "ask.mjs")
    for vectors, inputs in zip(found, [*INPUTS.values(), TEXTS], strict=True):
        np.testing.assert_array_equal(np.float32(vectors), wanted(key_marker, inputs))
