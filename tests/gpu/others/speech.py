# SPDX-License-Identifier: MIT. speech.py: torchaudio's spectrogram, cuDNN's LSTM, the CTC loss, and torchmetrics beside them.
import torch
import torchaudio
import torchmetrics
from torch import nn


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.mel = torchaudio.transforms.MelSpectrogram(16000, n_mels=64)
        self.conv = nn.Conv1d(64, 128, 5, padding=2)
        self.rnn = nn.LSTM(128, 128, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(256, 30)

    def forward(self, wave):
        x = self.conv((self.mel(wave) + 1e-6).log())
        x, _ = self.rnn(x.transpose(1, 2))
        return self.out(x).log_softmax(-1)


torch.manual_seed(0)
model = Listener().cuda()
optimizer = torch.optim.AdamW(model.parameters())
loss_of = nn.CTCLoss()
accuracy = torchmetrics.classification.MulticlassAccuracy(30).cuda()
wave = torch.randn(8, 16000, device="cuda")
text = torch.randint(1, 30, (8, 12), device="cuda")
done = 0
for _ in range(12):
    optimizer.zero_grad()
    p = model(wave)
    loss = loss_of(p.transpose(0, 1), text, torch.full((8,), p.shape[1], dtype=torch.long), torch.full((8,), 12, dtype=torch.long))
    loss.backward()
    optimizer.step()
    accuracy.update(p[:, :12].argmax(-1).flatten(), text.flatten())
    done += 1
assert 0 <= accuracy.compute().item() <= 1
torch.cuda.synchronize()
print(f"steps={done}")
