# SPDX-License-Identifier: MIT. sentences.py: sentence-transformers: a small BERT of random weights and a tokenizer made here, then encode().
import tempfile

import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

try:
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
except ImportError:  # before 6
    from sentence_transformers.models import Pooling, Transformer

torch.manual_seed(0)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"word{i}" for i in range(500)]
tokenizer = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = Whitespace()
with tempfile.TemporaryDirectory() as place:
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                            mask_token="[MASK]", model_max_length=64).save_pretrained(place)
    BertModel(BertConfig(num_hidden_layers=4, hidden_size=256, num_attention_heads=4, intermediate_size=1024,
                         vocab_size=len(words))).save_pretrained(place)
    transformer = Transformer(place)
    model = SentenceTransformer(modules=[transformer, Pooling(256)], device="cuda")
texts = [" ".join(f"word{(i * k) % 500}" for k in range(1, 5 + i % 40)) for i in range(256)]
vectors = model.encode(texts, batch_size=32, show_progress_bar=False)
torch.cuda.synchronize()
print(f"sentences={len(vectors)}")
